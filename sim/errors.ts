/** A rejected control request; `status` is the status of the answer. */
export class SimControlError extends Error {
  readonly code: string;
  readonly status: number;
  readonly retryable = false;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** Another program uses the requested port. */
export class PortTakenError extends Error {
  readonly code = 'port_taken';
  readonly retryable = false;

  constructor(host: string, port: number) {
    super(`port ${port} on ${host} is taken: choose another with --port or SIM_PORT`);
  }
}

/** The folder of recordings is missing or unreadable. */
export class RecordingsError extends Error {
  readonly code = 'recordings_unreadable';
  readonly retryable = false;
}
