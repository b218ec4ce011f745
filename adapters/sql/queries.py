"""Assembles the statements of one dialect, once, from the statement table.

Every UPDATE and DELETE of a job is `... WHERE id = ... AND (guard)`, with the guard on the very row
that it changes; no other place writes to the table of jobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from attrs import evolve

from unswept.adapters.sql.dialect import Dialect
from unswept.adapters.sql.rows import (
    BEFORE_COLUMNS,
    CONSUMER_COLUMNS,
    EVENT_COLUMNS,
    INSTANCE_COLUMNS,
    LETTER_COLUMNS,
    RESULT_COLUMNS,
    STANDING_COLUMNS,
    SUSPECT_COLUMNS,
    job_list,
    listed,
)
from unswept.adapters.sql.statements import (
    ADMIT,
    BIRTHS,
    ENQUEUE,
    EVENTS_PAST,
    EVENTS_PAST_BY_INDEX,
    EVICT,
    HERE,
    NOBODYS,
    OUTPUT,
    OWNED,
    RENEW,
    TRANSITIONS,
    Birth,
    Transition,
)


class Queries:
    """The text of every statement, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._jobs = dialect.table("jobs")
        self._transitions()
        self._ids_and_keys()
        self._jobs_read()
        self._riders()
        self._instances()
        self._outbox()

    def _text(self, sql: str) -> str:
        return self.dialect.text(" ".join(sql.split()))

    def _table(self, name: str) -> str:
        return self.dialect.table(name)

    # The lease table ----------------------------------------------------------------------------

    def _transitions(self) -> None:
        self.update: Mapping[str, str] = MappingProxyType(
            {name: self._update(t) for name, t in TRANSITIONS.items() if t.sets}
        )
        """By the transition's name: changes one row where its guard holds."""
        self.insert: Mapping[str, str] = MappingProxyType(
            {name: self._birth(birth) for name, birth in BIRTHS.items()}
        )
        self.admit = self.insert[ADMIT.name]
        self.enqueue = self.insert[ENQUEUE.name]
        renew = over_holds(RENEW, self.dialect.holds_now)
        self.renew_holds = self._text(
            f"{self.dialect.with_holds} UPDATE {self._jobs} SET {_assigned(renew)}"
            f" FROM {self.dialect.holds} WHERE id = hold_id AND ({renew.guard})"
            f" RETURNING id, deadline, cancel_requested_at"
        )
        """The renewal statement: one guarded update over all holds of a heartbeat."""
        self.append_chunk = self._text(
            f"INSERT INTO {self._table('output')} (job_id, epoch, chunk, stream, data)"
            f" SELECT :id, :epoch, :chunk, :stream, :data FROM {self._jobs}"
            f" WHERE id = :id AND ({OUTPUT.guard})"
            f" ON CONFLICT (job_id, epoch, chunk) DO NOTHING RETURNING chunk"
        )
        self.evict = self._text(
            f"DELETE FROM {self._jobs} WHERE id = :id AND ({EVICT.guard})"
            f" RETURNING {listed(STANDING_COLUMNS)}"
        )

    def _update(self, transition: Transition) -> str:
        return self._text(
            f"UPDATE {self._jobs} SET {_assigned(transition)}"
            f" WHERE id = :id AND ({transition.guard}) RETURNING {listed(STANDING_COLUMNS)}"
        )

    def _birth(self, birth: Birth) -> str:
        columns, values = zip(*birth.sets, strict=True)
        return self._text(
            f"INSERT INTO {self._jobs} ({', '.join(columns)}) VALUES ({', '.join(values)})"
            f" RETURNING {listed(STANDING_COLUMNS)}"
        )

    def _jobs_read(self) -> None:
        jobs, requests = self._jobs, self._table("requests")
        label_sets = self._table("label_sets")
        job = f"SELECT {job_list(label_sets)} FROM {jobs}"
        self.read_job = self._text(f"{job} WHERE id = :id")
        before = f"SELECT {listed(BEFORE_COLUMNS)} FROM {jobs}"
        self.lock_job = self._text(f"{before} WHERE id = :id {self.dialect.for_update}")
        self.share_job = self._text(
            f"SELECT {listed(STANDING_COLUMNS)} FROM {jobs}"
            f" WHERE id = :id {self.dialect.for_key_share}"
        )
        self.read_jobs = self._text(f"{job} WHERE id IN ({self.dialect.ids})")
        skip = self.dialect.skip_locked
        several = f"{before} WHERE id IN ({self.dialect.ids}) ORDER BY id"
        self.lock_to_sweep = self._text(f"{several} {self.dialect.for_renewal} {skip}")
        self.lock_to_move = self._text(f"{several} {self.dialect.for_update} {skip}")
        locked = self.dialect.find_locked(jobs)
        self.find_locked = None if locked is None else self._text(locked)
        self.suspects = self._text(
            f"SELECT {listed(SUSPECT_COLUMNS)} FROM {jobs}"
            f" WHERE {OWNED} AND deadline < :now AND id > :after"
            f" ORDER BY id LIMIT :rows {self.dialect.for_renewal} {skip}"
        )
        self._queue(before)
        grant = (
            f"SELECT {listed(STANDING_COLUMNS, 'j')}, transport, requeue, attempts,"
            f" payload, principal, request_key"
            f" FROM {jobs} AS j JOIN {requests} AS r ON r.job_id = j.id"
        )
        self.claimed_before = self._text(
            f"{grant} WHERE {OWNED} AND owner = :owner AND claim_no = :claim_no ORDER BY id"
        )
        self.count_claimed = self._text(
            f"SELECT count(*) FROM {jobs} WHERE {OWNED} AND owner = :owner AND claim_no IS NOT NULL"
        )
        self.claimed_now = self._text(f"{grant} WHERE id IN ({self.dialect.ids}) ORDER BY id")
        self.evictable = self._text(
            f"SELECT id, epoch FROM {jobs}"
            f" WHERE finished_at < :now - :retention_ms"
            f" ORDER BY finished_at, id LIMIT :rows"
        )
        self.expirable = self._text(
            f"SELECT id, epoch FROM {jobs} WHERE {NOBODYS} AND queue_deadline < :now"
            f" ORDER BY queue_deadline, id LIMIT :rows"
        )
        self.find = self._text(
            f"SELECT {job_list(label_sets, 'j')}, principal, request_key,"
            f" s.job_id, {listed(RESULT_COLUMNS)}"
            f" FROM {self._table('job_ids')} AS i"
            f" LEFT JOIN {jobs} AS j ON j.id = i.id"
            f" LEFT JOIN {requests} AS r ON r.job_id = j.id"
            f" LEFT JOIN {self._table('results')} AS s ON s.job_id = j.id"
            f" WHERE i.id = :id"
        )

        self.count_owned = self._text(f"SELECT count(*) FROM {jobs} WHERE {OWNED}")
        self.count_jobs = self._text(
            f"SELECT partition, 'waiting', count(*), min(admitted_at) FROM {jobs}"
            f" WHERE {NOBODYS} GROUP BY partition"
            f" UNION ALL SELECT partition, status, count(*), NULL FROM {jobs}"
            f" WHERE {OWNED} GROUP BY partition, status"
            f" UNION ALL SELECT partition, status, count(*), NULL FROM {jobs}"
            f" WHERE status = 'orphaned' GROUP BY partition, status"
        )
        """One statement, and so one snapshot; each part goes by its partial index."""

    def _queue(self, before: str) -> None:
        jobs, label_sets = self._jobs, self._table("label_sets")
        here = f"{NOBODYS} AND partition = :partition AND label_set ="
        due = "cancel_requested_at IS NULL AND (not_before IS NULL OR not_before <= :now)"
        order = "ORDER BY priority, admitted_at, id LIMIT :rows"
        lock = f"{self.dialect.for_update} {self.dialect.skip_locked}"
        self.candidates = self._text(f"{before} WHERE {here} :label_set AND {due} {order} {lock}")
        """The head of the queue of one set of labels, locked."""
        self.heads = self._text(
            f"SELECT priority, admitted_at, id FROM {jobs}"
            f" WHERE {here} :label_set AND {due} {order}"
        )
        """The same, only looked at."""
        self.lock_to_claim = self._text(
            f"{before} WHERE id IN ({self.dialect.ids}) AND {NOBODYS} AND {due} {order} {lock}"
        )
        self.matching_sets = self._text(
            f"SELECT id FROM {label_sets} AS s WHERE {self.dialect.offered}"
            f" AND EXISTS (SELECT 1 FROM {jobs} WHERE {here} s.id) ORDER BY id"
        )
        """Those of the sets that are offered in which somebody waits."""
        self.find_label_set = self._text(f"SELECT id FROM {label_sets} WHERE labels = :labels")
        self.put_label_set = self._text(
            f"INSERT INTO {label_sets} (labels) VALUES (:labels)"
            f" ON CONFLICT (labels) DO NOTHING RETURNING id"
        )

    # Ids that are born once, and dedup keys -----------------------------------------------------

    def _ids_and_keys(self) -> None:
        ids, keys = self._table("job_ids"), self._table("dedup_keys")
        self.bear_id = self._text(
            f"INSERT INTO {ids} (id, first_owner, born_at, joined_to)"
            f" VALUES (:id, :owner, :now, :joined_to)"
            f" ON CONFLICT (id) DO NOTHING RETURNING id"
        )
        self.read_id = self._text(f"SELECT first_owner, joined_to FROM {ids} WHERE id = :id")
        self.read_ids = self._text(f"SELECT id FROM {ids} WHERE id IN ({self.dialect.ids})")
        self.lock_key = self._text(self.dialect.lock_key(keys))
        free_key = self.dialect.free_key(keys)
        self.free_key = None if free_key is None else self._text(free_key)
        self.put_key = self._text(
            f"INSERT INTO {keys} (principal, request_key, job_id, admitted_at)"
            f" VALUES (:principal, :request_key, :id, :now)"
            f" ON CONFLICT (principal, request_key)"
            f" DO UPDATE SET job_id = excluded.job_id, admitted_at = excluded.admitted_at"
        )
        self.aged_keys = self._text(
            f"SELECT principal, request_key, job_id FROM {keys}"
            f" WHERE admitted_at < :now - :dedup_window_ms"
            f" ORDER BY principal, request_key LIMIT :rows"
        )
        self.forget_key = self._text(
            f"DELETE FROM {keys} WHERE principal = :principal AND request_key = :request_key"
            f" AND job_id = :id AND admitted_at + :dedup_window_ms < :now RETURNING job_id"
        )

    # What rides along, and what is left behind --------------------------------------------------

    def _riders(self) -> None:
        requests, results = self._table("requests"), self._table("results")
        output, events = self._table("output"), self._table("events")
        self.put_request = self._insert(requests, ("job_id", "payload", "principal", "request_key"))
        self.put_result = self._insert(results, ("job_id", *RESULT_COLUMNS))
        self.put_event = self._insert(events, EVENT_COLUMNS)
        self.read_request = self._text(
            f"SELECT r.job_id, payload, principal, request_key"
            f" FROM {self._table('job_ids')} AS i LEFT JOIN {requests} AS r ON r.job_id = i.id"
            f" WHERE i.id = :id"
        )
        self.read_chunk = self._text(
            f"SELECT chunk FROM {output} WHERE job_id = :id AND epoch = :epoch AND chunk = :chunk"
        )
        self.read_output = self._text(
            f"SELECT j.epoch, chunk, stream, data FROM {self._table('job_ids')} AS i"
            f" LEFT JOIN {self._jobs} AS j ON j.id = i.id"
            f" LEFT JOIN {output} AS o ON o.job_id = j.id"
            f" AND o.epoch = COALESCE(:epoch, j.epoch) AND chunk >= :first"
            f" WHERE i.id = :id ORDER BY chunk LIMIT :rows"
        )
        self.drop_request = self._text(f"DELETE FROM {requests} WHERE job_id = :id")
        self.drop_result = self._text(f"DELETE FROM {results} WHERE job_id = :id")
        self.drop_output = self._text(f"DELETE FROM {output} WHERE job_id = :id")
        self.find_event = self._text(
            f"SELECT actor FROM {events} WHERE job_id = :id AND epoch = :epoch AND kind = :kind"
        )
        self.read_events = self._text(
            f"SELECT seq, {listed(EVENT_COLUMNS)} FROM {events}"
            f" WHERE seq > :after ORDER BY seq LIMIT :rows"
        )
        self.probe = self.dialect.probe
        self.read_events_again = self._text(
            f"SELECT seq, {listed(EVENT_COLUMNS)}, {self.dialect.settled} FROM {events}"
            f" WHERE seq > :after AND seq <= :upto ORDER BY seq"
        )

    def _insert(self, table: str, columns: Iterable[str]) -> str:
        names = tuple(columns)
        values = ", ".join(f":{name}" for name in names)
        return self._text(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})")

    # Instances ----------------------------------------------------------------------------------

    def _instances(self) -> None:
        instances = self._table("instances")
        self.register = self._text(
            f"INSERT INTO {instances} AS known ({', '.join(INSTANCE_COLUMNS)})"
            f" VALUES (:id, :role, :host, :pid, :now, :now, :claim_no, :max_held, NULL)"
            f" ON CONFLICT (id) DO UPDATE SET role = excluded.role, host = excluded.host,"
            f" pid = excluded.pid, registered_at = CASE WHEN known.gone_at IS NULL"
            f" THEN known.registered_at ELSE excluded.registered_at END,"
            f" seen_at = excluded.seen_at, gone_at = excluded.gone_at,"
            f" max_held = excluded.max_held, claim_no = CASE"
            f" WHEN known.claim_no < excluded.claim_no THEN excluded.claim_no"
            f" ELSE known.claim_no END RETURNING claim_no"
        )
        self.list_instances = self._text(
            f"SELECT {listed(INSTANCE_COLUMNS)} FROM {instances} WHERE {HERE} ORDER BY id"
        )
        self.lock_instance = self._text(
            f"SELECT claim_no, max_held FROM {instances} WHERE id = :id AND {HERE}"
            f" {self.dialect.for_update}"
        )
        self.number_claim = self._text(
            f"UPDATE {instances} SET claim_no = :claim_no, seen_at = :now WHERE id = :id"
        )
        self.see_instance = self._text(
            f"UPDATE {instances} SET seen_at = :now WHERE id IN (SELECT id FROM {instances}"
            f" WHERE id = :id AND {HERE} {self.dialect.for_renewal} {self.dialect.skip_locked})"
        )
        """Waits for nobody: no hold may go unrenewed because its instance's row is locked."""
        self.read_instance = self._text(f"SELECT id FROM {instances} WHERE id = :id AND {HERE}")
        self.read_instances = self._text(
            f"SELECT id FROM {instances} WHERE id IN ({self.dialect.ids}) AND {HERE}"
        )
        self.silent = self._text(
            f"SELECT id, seen_at FROM {instances} WHERE {HERE}"
            f" AND seen_at < :now - :instance_gc_ms ORDER BY id LIMIT :rows"
        )
        silent = f"id = :id AND {HERE} AND seen_at = :seen_at AND seen_at + :instance_gc_ms < :now"
        self.drop_instance, self.drop_silent = (
            self._text(f"DELETE FROM {instances} WHERE claim_no = 0 AND {which}")
            for which in ("id = :id", f"{silent} RETURNING id")
        )
        self.part_from_instance, self.part_from_silent = (
            self._text(f"UPDATE {instances} SET gone_at = :now WHERE claim_no > 0 AND {which}")
            for which in ("id = :id", f"{silent} RETURNING id")
        )

    # Consumers of events ------------------------------------------------------------------------

    def _outbox(self) -> None:
        consumers, letters = self._table("consumers"), self._table("dead_letters")
        events = self._table("events")
        columns = listed(CONSUMER_COLUMNS)
        self.lock_consumer = self._text(
            f"SELECT {columns} FROM {consumers} WHERE name = :name {self.dialect.for_update}"
        )
        values = ", ".join(f":{name}" for name in CONSUMER_COLUMNS)
        self.begin_consumer = self._text(
            f"INSERT INTO {consumers} ({columns}) VALUES ({values})"
            f" ON CONFLICT (name) DO NOTHING RETURNING name"
        )
        self.move_consumer = self._text(
            f"UPDATE {consumers} SET position = :position, token = :token, holder = :holder,"
            f" expires_at = :expires_at, attempts = :attempts WHERE name = :name"
        )
        self.drop_consumer = self._text(f"DELETE FROM {consumers} WHERE name = :name")
        newest = f"SELECT COALESCE(max(seq), 0) FROM {events}"
        self.newest_event = self._text(newest)
        """Right whatever was removed, for the newest event of all never is."""
        self.how_far = self._text(
            f"SELECT ({newest}) AS newest, (SELECT min(position) FROM {consumers}) AS behind"
        )
        self.list_consumers = self._text(
            f"SELECT ({newest}) AS newest,"
            f" {listed(CONSUMER_COLUMNS, 'k')} FROM (SELECT 1 AS one) AS one"
            f" LEFT JOIN {consumers} AS k ON one = 1 ORDER BY name"
        )
        self.put_letter = self._insert(letters, LETTER_COLUMNS)
        self.read_letters = self._text(
            f"SELECT {listed(LETTER_COLUMNS)} FROM {letters} WHERE consumer = :consumer"
            f" AND number > :after ORDER BY number LIMIT :rows"
        )
        self.drop_letters = self._text(f"DELETE FROM {letters} WHERE consumer = :name")
        given_up = (
            f"SELECT 1 FROM {events} AS told JOIN {letters} AS letter ON letter.number = told.seq"
            f" WHERE told.job_id ="
        )
        self.past_events = self._text(
            f"SELECT job_id FROM {events} AS evicted"
            f" WHERE {EVENTS_PAST_BY_INDEX} AND NOT EXISTS ({given_up} evicted.job_id)"
            f" ORDER BY at, seq LIMIT :rows"
        )
        self.forget_events = self._text(
            f"DELETE FROM {events} WHERE job_id = :id"
            f" AND EXISTS (SELECT 1 FROM {events} AS evicted WHERE job_id = :id AND {EVENTS_PAST})"
            f" AND NOT EXISTS ({given_up} :id) RETURNING job_id"
        )


def over_holds(transition: Transition, now: str) -> Transition:
    """The same for a batch of holds: the epoch is not one parameter but that of each hold, and the
    store time is whatever `now` says."""

    def of_holds(fragment: str) -> str:
        return re.sub(r":now\b", now, re.sub(r":epoch\b", "hold_epoch", fragment))

    sets = tuple((column, of_holds(value)) for column, value in transition.sets)
    return evolve(transition, guard=of_holds(transition.guard), sets=sets)


def _assigned(transition: Transition) -> str:
    return ", ".join(f"{column} = {expression}" for column, expression in transition.sets)
