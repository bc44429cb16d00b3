import { getEventListeners, once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { forwardAbort, openDeadline, WakeUp } from '../../../../src/domain/values/signals.ts';
import { collectGarbage } from '../../../support/collect-garbage.ts';

const LONG_MS = 600_000;

describe('forwardAbort', () => {
  it('aborts the controller with the reason of the signal', () => {
    const [source, target] = [new AbortController(), new AbortController()];
    forwardAbort(source.signal, target);
    expect(target.signal.aborted).toBe(false);
    source.abort('stopping');
    expect(target.signal.reason).toBe('stopping');
  });

  it('aborts the controller at once when the signal is aborted', () => {
    const target = new AbortController();
    forwardAbort(AbortSignal.abort('before'), target);
    expect(target.signal.reason).toBe('before');
  });

  it('leaves no listener after the link ends', () => {
    const [source, target] = [new AbortController(), new AbortController()];
    forwardAbort(source.signal, target)();
    expect(getEventListeners(source.signal, 'abort')).toEqual([]);
    source.abort();
    expect(target.signal.aborted).toBe(false);
  });

  it('makes Node warn of nothing when many controllers follow one signal', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on('warning', note);
    const source = new AbortController();
    const targets = Array.from({ length: 50 }, () => new AbortController());
    const unlinks = targets.map((target) => forwardAbort(source.signal, target));
    unlinks[7]?.();
    source.abort('stopping');
    // A warning is emitted in a later tick.
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', note);
    expect(warnings).toEqual([]);
    expect(targets.map(({ signal }) => signal.aborted)).toEqual(targets.map((_, index) => index !== 7));
    expect(getEventListeners(source.signal, 'abort')).toEqual([]);
  });
});

describe('openDeadline', () => {
  it('fires after its time, also when garbage was collected before', async () => {
    const { signal } = openDeadline([new AbortController().signal], 200);
    const fired = once(signal, 'abort');
    await collectGarbage();
    await fired;
    expect(String(signal.reason)).toContain('deadline of 200 ms passed');
  });

  it.each([0, 1])('fires when parent %i aborts', (index) => {
    const parents = [new AbortController(), new AbortController()];
    const deadline = openDeadline(
      parents.map(({ signal }) => signal),
      LONG_MS,
    );
    parents[index]?.abort('stopping');
    expect(deadline.signal.reason).toBe('stopping');
    deadline.close();
  });

  it('leaves no listener in its parents after its close', () => {
    const { signal } = new AbortController();
    const deadline = openDeadline([signal], LONG_MS);
    expect(deadline.remainingMs()).toBeGreaterThan(0);
    deadline.close();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('WakeUp', () => {
  const never = new AbortController().signal;

  it('ends the present wait, and a wait that begins after a wake-up', async () => {
    const wakeUp = new WakeUp();
    const waiting = wakeUp.wait(LONG_MS, never);
    wakeUp.wake();
    await waiting;
    await wakeUp.wait(LONG_MS, never);
  });

  it('forgets wake-ups when they are taken, and then waits for its time', async () => {
    const wakeUp = new WakeUp();
    expect(wakeUp.take()).toBe(false);
    wakeUp.wake();
    expect([wakeUp.take(), wakeUp.take()]).toEqual([true, false]);
    let hasEnded = false;
    const waiting = wakeUp.wait(20, never).then(() => {
      hasEnded = true;
    });
    await Promise.resolve();
    expect(hasEnded).toBe(false);
    await waiting;
  });

  it('ends a wait when the signal fires, and leaves no listener', async () => {
    const wakeUp = new WakeUp();
    const over = new AbortController();
    const waiting = wakeUp.wait(LONG_MS, over.signal);
    over.abort();
    await waiting;
    await wakeUp.wait(LONG_MS, over.signal);
    wakeUp.wake();
    expect(getEventListeners(over.signal, 'abort')).toEqual([]);
  });
});
