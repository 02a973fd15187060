// An error whose message is written for the person who installs the agent.

/** The message says what happened, then what to do. */
export class SetupError extends Error {
  override name = 'SetupError'
}
