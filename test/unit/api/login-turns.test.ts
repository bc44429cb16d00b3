import { describe, expect, it } from 'vitest';
import { createLoginTurns, type LoginLane } from '../../../api/pages/ops/access/login-turns.ts';
import { gate } from '../../support/gate.ts';

const lane = (id: string, isKnown = false): LoginLane => ({ id, isKnown });

/** Turns whose first check is in flight until `open`, and the order of the checks after it. */
function setUp(maxWaiting?: number) {
  const turns = createLoginTurns(maxWaiting);
  const order: string[] = [];
  const { opened, open } = gate();
  const first = turns(lane('first'), () => opened);
  const ask = (id: string, isKnown = false) =>
    turns(lane(id, isKnown), async () => void order.push(id)).then(
      () => 'checked',
      (error: { code: string }) => error.code,
    );
  return { turns, order, open, first, ask };
}

describe('the turns of logins', () => {
  it('check one password at a time, and lanes alternate', async () => {
    const { order, open, ask, first } = setUp();
    const asked = ['a', 'a', 'a', 'b', 'c', 'b'].map((id) => ask(id));
    expect(order).toEqual([]);
    open();
    await Promise.all([first, ...asked]);
    expect(order).toEqual(['a', 'b', 'c', 'a', 'b', 'a']);
  });

  it('prefer known browsers and never refuse them', async () => {
    const { order, open, ask } = setUp(1);
    const asked = [ask('a'), ask('known', true), ask('known', true), ask('other', true)];
    open();
    expect(await Promise.all(asked)).toEqual(['checked', 'checked', 'checked', 'checked']);
    expect(order).toEqual(['known', 'other', 'known', 'a']);
  });

  it('refuse the newest login of the longest lane when too many wait', async () => {
    const { order, open, ask } = setUp(3);
    const flood = [ask('flood'), ask('flood'), ask('flood'), ask('flood')];
    const person = ask('person');
    open();
    expect(await Promise.all(flood)).toEqual(['checked', 'checked', 'rate_limited', 'rate_limited']);
    expect(await person).toBe('checked');
    expect(order).toEqual(['flood', 'person', 'flood']);
  });

  it('continue after a check that fails', async () => {
    const { turns, open, ask } = setUp();
    const failed = turns(lane('x'), () => Promise.reject(new Error('away')));
    const next = ask('x');
    open();
    await expect(failed).rejects.toThrow('away');
    expect(await next).toBe('checked');
    expect(await ask('later')).toBe('checked');
  });
});
