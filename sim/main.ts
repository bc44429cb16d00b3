import { setFlagsFromString } from 'node:v8';
import { parseCommandLine, USAGE, UsageError } from './cli.ts';
import { PortTakenError, RecordingsError, startExchange } from './exchange.ts';

// Every answer is garbage at once: by default its memory grows to several times the size of what is kept.
setFlagsFromString('--heap-growing-percent=30');

try {
  const exchange = await startExchange(parseCommandLine(process.argv.slice(2), process.env['SIM_PORT']));
  console.log(`sim: simulator ready at ${exchange.url} (seed ${exchange.seed})`);
  let isEnding = false;
  const end = (): void => {
    if (isEnding) return;
    isEnding = true;
    exchange.close().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(`sim: ${String(error)}`);
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
  // Without a parent, no process would stop this one.
  process.once('disconnect', end);
} catch (error) {
  if (error instanceof UsageError) console.error(`sim: ${error.message}\n${USAGE}`);
  else if (error instanceof PortTakenError || error instanceof RecordingsError) console.error(`sim: ${error.message}`);
  else console.error(error);
  process.exit(1);
}
