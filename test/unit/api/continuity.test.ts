import { describe, expect, it } from 'vitest';
import type { StreamClient } from '../../../api/streams/client.ts';
import { Continuity } from '../../../api/streams/continuity.ts';
import type { StaleReason } from '../../../src/domain/live/change.ts';

const HEARTBEAT_MS = 15_000;

/** A stream whose source was complete at `completeAtMs`. */
function aStream() {
  const state = { completeAtMs: 0, reason: undefined as StaleReason | undefined, isAble: true, marked: 0 };
  const client = { heartbeatMs: HEARTBEAT_MS, writtenAtMs: -1, changedAtMs: -1 };
  const unsent = (text: string) => (state.isAble ? [text as never] : []);
  const continuity = new Continuity({
    rounds: { mark: () => void state.marked++ },
    staleMs: (nowMs) => nowMs - state.completeAtMs,
    reason: () => state.reason,
    heartbeat: () => unsent('heartbeat'),
    stale: (_, reason) => unsent(reason),
  });
  const stream = client as unknown as StreamClient;
  continuity.add(stream);
  state.marked = 0;
  /** The messages at this moment. A complete source was complete just now. */
  const at = (nowMs: number, isComplete = true): unknown[] => {
    if (isComplete) state.completeAtMs = nowMs;
    continuity.markDue(nowMs);
    const messages = continuity.whenIdle(stream, nowMs);
    if (messages.length > 0) client.writtenAtMs = nowMs;
    return [...messages];
  };
  const change = (nowMs: number) => Object.assign(client, { writtenAtMs: nowMs, changedAtMs: nowMs });
  return { state, continuity, stream, at, change };
}

describe('Continuity', () => {
  it('sends a heartbeat at once, and the next one after the time between heartbeats', () => {
    const { at, state } = aStream();
    expect([at(100), at(200), at(15_099)]).toEqual([['heartbeat'], [], []]);
    expect(state.marked).toBe(1);
    expect(at(15_100)).toEqual(['heartbeat']);
  });

  it('sends one heartbeat when a second has passed since the last change', () => {
    const { at, change } = aStream();
    at(100);
    change(500);
    expect([at(1_499), at(1_500), at(3_000)]).toEqual([[], ['heartbeat'], []]);
  });

  it('sends a heartbeat at once after hasten', () => {
    const { at, continuity, stream } = aStream();
    at(100);
    continuity.hasten();
    expect(at(200)).toEqual(['heartbeat']);
    continuity.hasten([stream]);
    expect([at(300), at(400)]).toEqual([['heartbeat'], []]);
  });

  it('sends the heartbeat later when the source has none', () => {
    const { at, state } = aStream();
    state.isAble = false;
    expect(at(100)).toEqual([]);
    state.isAble = true;
    expect(at(200)).toEqual(['heartbeat']);
  });

  it('sends nothing while the source is not complete and the cause is unknown', () => {
    const { at } = aStream();
    at(100);
    expect([at(1_100, false), at(20_000, false)]).toEqual([[], []]);
  });

  it('names the cause once, again at another cause and after the time between heartbeats', () => {
    const { at, state } = aStream();
    at(100);
    state.reason = 'publisher_stalled';
    expect([at(1_100, false), at(1_101, false), at(1_200, false)]).toEqual([[], ['publisher_stalled'], []]);
    state.reason = 'database_unreachable';
    expect([at(1_300, false), at(16_299, false), at(16_300, false)]).toEqual([
      ['database_unreachable'],
      [],
      ['database_unreachable'],
    ]);
  });

  it('sends a heartbeat at once when the source is complete again', () => {
    const { at, state } = aStream();
    at(100);
    state.reason = 'commit_pending';
    expect([at(2_000, false), at(2_100), at(2_200)]).toEqual([['commit_pending'], ['heartbeat'], []]);
  });

  it('sends nothing to a client that has left', () => {
    const { at, continuity, stream } = aStream();
    continuity.remove(stream);
    expect(at(100)).toEqual([]);
  });
});
