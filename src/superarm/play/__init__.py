"""The idea in thirty seconds: teach SetLogit in the browser, one bit at a time.

game.py     the pictures, the learners and what they learn from; no HTTP in it
app.py      the routes, on the service's own parts, and a server for one person
page.html   the page
"""
