import { VARIABLES } from '../src/config/variables.ts';
import { waitUntilAnswers } from '../src/runtime/wait-until.ts';
import { assertReady } from './api-ready.ts';
import { callOf } from './invocation.ts';
import { runnerCommand } from './terminal.ts';

const DATA_DIR = VARIABLES.DATA_DIR.default;

/** `oddswire start`: the processes of the Procfile, with an embedded Postgres unless DATABASE_URL names another. */
export const command = runnerCommand({
  usage: `usage: oddswire start

  Runs every process of the Procfile on this machine until Ctrl-C, with the database of DATABASE_URL, or with an embedded
  Postgres in DATA_DIR (default ${DATA_DIR}). \`oddswire config\` lists all environment variables.`,
  async prepare({ environment, dataDir, log, signal, say }) {
    return {
      environment,
      dataDir,
      async onStarted(apiUrl) {
        await waitUntilAnswers('the API', () => assertReady(apiUrl, signal), log, signal);
        say(readyText(apiUrl));
      },
    };
  },
});

/** The last lines of the start: the address, and how to get a key. */
function readyText(apiUrl: string): string {
  const create = callOf('keys', 'create --account me --name laptop', process.env);
  return `oddswire is ready: API ${apiUrl}, documentation ${apiUrl}/docs\nCreate an API key: ${create}`;
}
