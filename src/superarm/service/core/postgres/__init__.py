"""A journal that many processes share, in PostgreSQL: any decides, any takes answers, one learns.

connecting.py   addresses without passwords, connections, what a failure is called
clock.py        the database's time, by the steady clock of the process
schema.py       the tables, their number, the way from an older one, the two roles
tables.py       rows in and out: writers, events, batches, snapshots
moments.py      a decision from its record: the model's version, the round, the rule's numbers
answers.py      decisions that may be answered, and answers that are learnt in one call
ordered.py      what each event does to the model, in the one order: the learner's loop and replay share it
warming.py      compiling, before a process stands for the office
electing.py     who learns: an advisory lock, a term, a heart that beats
learning.py     the loop of the process that learns: take, learn, publish; expire, retain, erase
desk.py         the loop of every process: decide and take answers, a turn in one statement
rebuilding.py   the newest model: as it was published, or from the last snapshot and the order after it
watching.py     what a process tells those who look
session.py      one process among many, with the face of `core.session.Session`
group.py        taking turns: waits are bounded
reading.py      the journal as replay, export and the dashboard read it
checking.py     replay and verify
founding.py     a new journal is given its tables and its learner
moving.py       a SQLite journal's past comes along
"""

from superarm.extras import need

need("serve")
need("postgres")
