// The files in the state directory by which the coordinator and an agent without a box agree on the box.

export const STANDBY_FILES = {
  /** Written by the agent: it is loaded, and waits. */
  waiting: 'standby',
  /** Written by the coordinator as the last file: a JSON object with the environment variables of the agent. */
  variables: 'variables.json',
} as const
