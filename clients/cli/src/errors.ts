/** A missing or invalid variable. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/** A failure with its own text and exit code. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}
