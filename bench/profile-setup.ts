import type { EventEmitter } from 'node:events';
import { afterAll, expect } from 'vitest';

/** For profile-hook.mjs: the worker of a bench file is killed at its end. */
afterAll(() => {
  const events: EventEmitter = process;
  events.emit('profile-end', (expect.getState().testPath ?? 'bench').replace(/\.ts$/, ''));
});
