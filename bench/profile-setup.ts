import type { EventEmitter } from 'node:events';
import { afterAll, expect } from 'vitest';

/** For profile-hook.mjs, because vitest kills the worker of a bench file. */
afterAll(() => {
  const events: EventEmitter = process;
  events.emit('profile-end', (expect.getState().testPath ?? 'bench').replace(/\.ts$/, ''));
});
