import { OddswireError } from '../../src/domain/values/errors.ts';

const ANSWER_MS = 5_000;

/** Resolves when the API and its dependencies are ready. @throws an error that states the reason to wait */
export async function assertReady(apiUrl: string, signal: AbortSignal): Promise<void> {
  const response = await fetch(`${apiUrl}/health/ready`, {
    signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
  });
  await response.arrayBuffer();
  if (!response.ok) throw new OddswireError('not_ready', `the API answered ${response.status}`, { retryable: true });
}
