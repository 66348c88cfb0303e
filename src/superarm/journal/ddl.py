"""The tables that journals in SQLite and in PostgreSQL have alike.

meta        what it was made for; one row a key
events      facts, numbered from 1, each with its digests
pending     decisions that wait for an outcome
snapshots   totals and makers of each snapshot, and the digests of its parts
parts       the parts of the snapshots, in pieces: no value of a database should be large
progress    how far some work has come, by its name
"""

from __future__ import annotations

TABLES = """
CREATE TABLE meta (key {text} PRIMARY KEY, value {text} NOT NULL){by_key};
CREATE TABLE events (
  seq {integer} PRIMARY KEY, time {real} NOT NULL, kind {small} NOT NULL, id {text} NOT NULL,
  x {blob}, context {blob}, body {blob} NOT NULL, content {blob} NOT NULL, digest {blob} NOT NULL, erased {integer}
);
CREATE UNIQUE INDEX events_id ON events (id, kind) WHERE kind < 4;
CREATE INDEX events_answers ON events (id) WHERE kind IN (4, 5);
CREATE INDEX events_changes ON events (seq) WHERE kind > 5;
CREATE TABLE pending (seq {integer} PRIMARY KEY, time {real} NOT NULL, id {text} NOT NULL);
CREATE TABLE snapshots (
  seq {integer} PRIMARY KEY, time {real} NOT NULL, totals {text} NOT NULL, made_by {text} NOT NULL,
  parts {text} NOT NULL, digest {blob} NOT NULL, pinned {flag} NOT NULL
);
CREATE TABLE parts (seq {integer} NOT NULL, part {text} NOT NULL, number {number} NOT NULL, data {blob} NOT NULL);
CREATE UNIQUE INDEX part ON parts (seq, part, number);
CREATE TABLE progress (key {text} PRIMARY KEY, value {integer} NOT NULL){by_key};
"""
