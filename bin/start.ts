import { loadFeeds } from '../src/config/config.ts';
import { VARIABLES } from '../src/config/variables.ts';
import { OddswireError } from '../src/domain/values/errors.ts';
import { openDeadline } from '../src/domain/values/signals.ts';
import { waitUntilAnswers } from '../src/runtime/wait-until.ts';
import { startBannerText } from './start/banner.ts';
import { callOf, runnerCommand } from './terminal.ts';

const ANSWER_MS = 5_000;

/** Resolves when the API and its dependencies are ready. @throws an error that states the reason to wait */
async function assertReady(apiUrl: string, signal: AbortSignal): Promise<void> {
  const deadline = openDeadline([signal], ANSWER_MS);
  try {
    const response = await fetch(`${apiUrl}/health/ready`, { signal: deadline.signal });
    await response.arrayBuffer();
    if (!response.ok) throw new OddswireError('not_ready', `the API answered ${response.status}`, { retryable: true });
  } finally {
    deadline.close();
  }
}

const DATA_DIR = VARIABLES.DATA_DIR.default;

/** `oddswire start`: the processes of the Procfile, with an embedded Postgres unless DATABASE_URL names another. */
export const command = runnerCommand({
  usage: `usage: oddswire start [--small]

  Runs every process of the Procfile on this machine until Ctrl-C, with the database of DATABASE_URL, or with an embedded
  Postgres in DATA_DIR (default ${DATA_DIR}). \`oddswire config\` lists all environment variables.`,
  async prepare({ environment, dataDir, log, signal, say }) {
    return {
      environment,
      dataDir,
      async onStarted(apiUrl) {
        await waitUntilAnswers('the API', () => assertReady(apiUrl, signal), log, signal);
        say(
          startBannerText({
            apiUrl,
            environment,
            dataDir,
            isOpsOn: await servesOps(apiUrl, signal),
            ...loadFeeds(environment),
            createKey: callOf('keys', 'create --account me --name laptop', process.env),
            addOperator: callOf('operators', 'add NAME --role operator', process.env),
          }),
        );
      },
    };
  },
});

/** Whether the API serves the operator pages. */
async function servesOps(apiUrl: string, signal: AbortSignal): Promise<boolean> {
  const response = await fetch(`${apiUrl}/ops`, { redirect: 'manual', signal });
  await response.body?.cancel();
  return response.status !== 404;
}
