import { afterAll, beforeAll } from 'vitest';
import { type Client, startTestApi, type TestApi } from './api-harness.ts';

interface Started {
  api: TestApi;
  client: Client;
  /** Another account, to which nothing of the first belongs. */
  stranger: Client;
}

/** An api for the tests of a file, with two accounts: `keep` is given it before hooks that come later; closed after the last test. */
export function withApi(keep: (started: Started) => void): void {
  let api: TestApi;
  beforeAll(async () => {
    api = await startTestApi();
    keep({ api, client: await api.client(), stranger: await api.client() });
  });
  afterAll(() => api.close());
}
