import { getEventListeners, once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { forwardAbort, openDeadline } from '../../../../src/domain/values/signals.ts';
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
