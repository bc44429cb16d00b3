import { forTests } from '../../support/for-tests.ts';
import { type Client, type TestApi, useTestApi } from './api-harness.ts';

interface Started {
  api: TestApi;
  client: Client;
  /** Another account, without the resources of the first. */
  stranger: Client;
}

/** An API with two accounts for the tests of a file. */
export function withApi(): Started {
  const api = useTestApi();
  return { api, client: forTests(() => api.client()), stranger: forTests(() => api.client()) };
}
