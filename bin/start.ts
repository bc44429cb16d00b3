import { runInTerminal } from './terminal.ts';

/** `npm start`: the processes of the Procfile, with an embedded Postgres unless DATABASE_URL names another. */
await runInTerminal(async ({ environment, dataDir }) => ({ environment, dataDir }));
