import { OddswireError } from '../domain/values/errors.ts';

/** The embedded database cannot be prepared, started, taken over or stopped; the message names the cause and the remedy. */
export class EmbeddedPostgresError extends OddswireError {
  constructor(message: string, cause?: unknown) {
    super('embedded_postgres', message, cause === undefined ? {} : { cause });
  }
}

/** A configured TCP port belongs to another program. */
export class PortTakenError extends OddswireError {
  constructor(host: string, port: number, variable: string) {
    super('port_taken', `port ${port} on ${host} is already taken; set ${variable} to another one`);
  }
}

/** The Procfile cannot be read as `name: command` lines. */
export class ProcfileError extends OddswireError {
  constructor(message: string) {
    super('invalid_procfile', `Procfile: ${message}`);
  }
}
