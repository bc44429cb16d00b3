import { describe, expect, it } from 'vitest';
import { LiveClock } from '../../../sim/live-clock.ts';
import { worldOptions } from '../../../sim/options.ts';
import { World } from '../../../sim/world/world.ts';

const NOW = 1_790_000_000;

function setup() {
  const wall = { ms: NOW * 1000 };
  const world = new World(worldOptions({ historyHours: 0.05, nowSecond: NOW, markets: 12 }, NOW));
  world.playHistory();
  const clock = new LiveClock(world, () => wall.ms);
  return { wall, world, clock };
}

describe('LiveClock', () => {
  it('plays a second after it has begun on the wall clock', () => {
    const { wall, world, clock } = setup();
    const { steps } = world;
    wall.ms += 2_999;
    clock.catchUp();
    expect([world.second, world.steps]).toEqual([NOW + 2, steps + 2]);
    wall.ms += 1;
    clock.catchUp();
    expect(world.second).toBe(NOW + 3);
  });

  it('skips most seconds of a long sleep', () => {
    const { wall, world, clock } = setup();
    const { steps } = world;
    wall.ms += 3_600_000;
    clock.catchUp();
    expect([world.second, world.steps]).toEqual([NOW + 3600, steps + 60]);
  });

  it('stops while paused, then jumps to the wall clock without trades in between', () => {
    const { wall, world, clock } = setup();
    clock.pause();
    const { steps } = world;
    const { nextIndex } = world.tape;
    wall.ms += 30_000;
    clock.catchUp();
    expect(world.second).toBe(NOW);
    clock.resume();
    clock.catchUp();
    expect([world.second, world.steps, world.tape.nextIndex]).toEqual([NOW + 30, steps, nextIndex]);
  });

  it('keeps its lead from manual steps', () => {
    const { wall, world, clock } = setup();
    clock.pause();
    for (let at = 0; at < 100; at += 1) world.step();
    clock.resume();
    wall.ms += 5_000;
    clock.catchUp();
    expect(world.second).toBe(NOW + 105);
  });
});
