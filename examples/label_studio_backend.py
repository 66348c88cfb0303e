"""A backend for Label Studio that also learns from suggestions that people reject.

Label Studio asks an ML backend for predictions and tells it of annotations. This one learns from each annotation at
once, and where somebody takes a suggestion away and submits nothing in its place, it learns that it was not that
label. The labels are those of the project's <Choices>; the model is kept in a file.

    python examples/label_studio_backend.py --model team.npz          then connect http://localhost:9090 to the project,
                                                                      and let Label Studio send annotations to /webhook
    python examples/label_studio_backend.py --try                     a played Label Studio, with a played annotator

It speaks the four routes of Label Studio's ML backends (/health, /setup, /predict, /webhook) without their package.
It was tried with requests as the source of that package has them, and not with a Label Studio.
"""

from __future__ import annotations

import argparse
import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import superarm as sa


class Backend:
    """The model of one project."""

    def __init__(self, file: Path | None) -> None:
        self.file, self.learner, self.lessons = file, None, 0
        self.choices, self.text = "", ""  # names of the tags
        if file is not None and file.exists():
            self.learner = sa.load(file)

    def setup(self, config: str) -> None:
        """Take labels and names from the project's labelling interface."""
        choices = next(ElementTree.fromstring(config).iter("Choices"))
        self.choices, self.text = choices.attrib["name"], choices.attrib["toName"]
        if self.learner is None:
            labels = [choice.attrib["value"] for choice in choices.iter("Choice")]
            self.learner = sa.SetLogit(labels=labels, set_size=1, seed=0)

    def predict(self, task: dict[str, Any]) -> dict[str, Any]:
        """A suggestion, with the belief in it as its score."""
        label, belief = max(
            zip(self.learner.labels, self.learner.predict_proba([task["data"]])[0], strict=True),
            key=lambda one: one[1],
        )
        value = {"choices": [str(label)]}
        result = [{"from_name": self.choices, "to_name": self.text, "type": "choices", "value": value}]
        return {"result": result, "score": float(belief), "model_version": self.version}

    @property
    def version(self) -> str:
        return f"superarm-{self.lessons}"

    def chosen(self, given: dict[str, Any]) -> list[str]:
        """The labels in an annotation or a prediction."""
        parts = [part for part in given["result"] if part["from_name"] == self.choices]
        return [label for part in parts for label in part["value"]["choices"]]

    def learn(self, task: dict[str, Any], annotation: dict[str, Any]) -> None:
        """Of a chosen label, or of a suggestion that was taken away."""
        if annotation.get("was_cancelled"):
            return
        chosen = self.chosen(annotation)
        if len(chosen) == 1:
            self.learner.update(sa.Decision.given(task["data"], chosen), label=chosen[0])
        elif not chosen and annotation.get("prediction"):
            rejected = self.chosen(annotation["prediction"])
            self.learner.update(sa.Decision.given(task["data"], rejected), hit=False)
        self.lessons += 1
        if self.file is not None:
            self.learner.save(self.file)


def server(backend: Backend, port: int) -> HTTPServer:
    """One request at a time: the learner is one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply({"status": "UP", "model_class": "superarm"})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path == "/setup":
                backend.setup(body["schema"])
                self.reply({"model_version": backend.version})
            elif self.path == "/predict":
                backend.setup(body["label_config"])
                self.reply({"results": [backend.predict(task) for task in body["tasks"]]})
            elif self.path == "/webhook":
                if body["action"] in ("ANNOTATION_CREATED", "ANNOTATION_UPDATED"):
                    backend.learn(body["task"], body["annotation"])
                self.reply({})
            else:
                self.send_error(404)

        def reply(self, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    return HTTPServer(("127.0.0.1", port), Handler)


# ---------------------------------------------------------------- a played Label Studio

CONFIG = """<View><Text name="text" value="$text"/><Choices name="team" toName="text">
<Choice value="billing"/><Choice value="login"/><Choice value="delivery"/><Choice value="returns"/></Choices></View>"""
WORDS = {
    "billing": ["invoice", "charged", "amount", "refund", "fee", "twice", "card"],
    "login": ["password", "account", "locked", "reset", "mail", "sign", "code"],
    "delivery": ["parcel", "late", "courier", "arrived", "address", "tracking", "lost"],
    "returns": ["size", "exchange", "send", "back", "shoes", "broken", "label"],
}


def play(address: str, rows: int) -> None:
    """Ask, annotate, tell: half of the wrong suggestions are only taken away."""
    import numpy as np

    def post(path: str, body: dict[str, Any]) -> Any:
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(address + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    random, right = np.random.default_rng(0), []
    everything = [word for words in WORDS.values() for word in words]
    post("/setup", {"project": "1", "schema": CONFIG})
    for number in range(rows):
        team = str(random.choice(list(WORDS)))
        text = " ".join([*random.choice(WORDS[team], 3), *random.choice(everything, 4)])
        task = {"id": number, "data": {"text": text}}
        [prediction] = post("/predict", {"tasks": [task], "project": "1", "label_config": CONFIG})["results"]
        suggested = prediction["result"][0]["value"]["choices"][0]
        right.append(suggested == team)
        taken_away = suggested != team and random.random() < 0.5
        result = [] if taken_away else [{**prediction["result"][0], "value": {"choices": [team]}}]
        annotation = {"result": result, "prediction": prediction, "was_cancelled": False}
        post("/webhook", {"action": "ANNOTATION_CREATED", "task": task, "annotation": annotation})
    first, last = (100 * np.mean(part) for part in (right[: rows // 10], right[-rows // 10 :]))
    print(f"right suggestions: {first:.0f}% in the first tenth, {last:.0f}% in the last")


def main() -> None:
    parser = argparse.ArgumentParser(description="A Label Studio backend that learns from rejects.")
    parser.add_argument("--port", type=int, default=9090)
    parser.add_argument("--model", type=Path, help="the file that keeps the model")
    parser.add_argument("--try", dest="trial", action="store_true", help="play Label Studio, too")
    options = parser.parse_args()
    made = server(Backend(options.model), 0 if options.trial else options.port)
    if not options.trial:
        print(f"http://127.0.0.1:{made.server_port}", flush=True)
        made.serve_forever()
    threading.Thread(target=made.serve_forever, daemon=True).start()
    play(f"http://127.0.0.1:{made.server_port}", 500)


if __name__ == "__main__":
    main()
