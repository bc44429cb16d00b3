import { afterAll, beforeAll } from 'vitest';

/** A value that `open` makes before the tests of a file or a group, and that `close` ends after them. */
export function forTests<T extends object>(open: () => Promise<T>, close: (value: T) => unknown = () => undefined): T {
  let value: T | undefined;
  beforeAll(async () => {
    value = await open();
  });
  afterAll(async () => {
    if (value !== undefined) await close(value);
  });
  const opened = () => {
    if (value === undefined) throw new TypeError('the value exists during tests only');
    return value;
  };
  return new Proxy({} as T, {
    get: (_, name) => Reflect.get(opened(), name),
    set: (_, name, next) => Reflect.set(opened(), name, next),
    ownKeys: () => Reflect.ownKeys(opened()),
    getOwnPropertyDescriptor: (_, name) => ({
      ...Reflect.getOwnPropertyDescriptor(opened(), name),
      configurable: true,
    }),
  });
}
