// What starts the agent when the machine starts: a service manager, or nothing.

export const SERVICE_KINDS = ['systemd', 'systemd-user', 'none'] as const
export type ServiceKind = (typeof SERVICE_KINDS)[number]

export type Service = {
  kind: ServiceKind
  /**
   * Creates the unit and enables it.
   * @param addDirectory call it with each directory before its creation: the removal deletes those that it has created
   */
  install(addDirectory: (path: string) => Promise<void>): Promise<void>
  /** Starts the agent. No-op when it runs. */
  start(): Promise<void>
  /** Stops the supervisor and the agent. Commands continue. No-op when they do not run. */
  stop(): Promise<void>
  /** Removes what install() has created. */
  remove(): Promise<void>
  /** Printed after the installation, if the user has to know more. */
  getNotice(): string | null
}
