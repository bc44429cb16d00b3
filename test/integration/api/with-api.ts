import { afterAll, beforeAll } from 'vitest';
import { type Client, startTestApi, type TestApi } from './api-harness.ts';

interface Started {
  api: TestApi;
  client: Client;
  /** Another account, without the resources of the first. */
  stranger: Client;
}

/** Starts an API with two accounts for the tests of a file, passes it to `keep` before later hooks, and closes it at the end. */
export function withApi(keep: (started: Started) => void): void {
  let api: TestApi;
  beforeAll(async () => {
    api = await startTestApi();
    keep({ api, client: await api.client(), stranger: await api.client() });
  });
  afterAll(() => api.close());
}
