// What starts the agent when the machine starts: the service manager of the system or of the user, or nothing.

export const SERVICE_KINDS = ['none'] as const
export type ServiceKind = (typeof SERVICE_KINDS)[number]

export type Service = {
  kind: ServiceKind
  /** Creates the unit and enables it. */
  install(): Promise<void>
  /** Starts the agent. No-op when it runs. */
  start(): Promise<void>
  /** Stops the supervisor and the agent. Commands continue. No-op when they do not run. */
  stop(): Promise<void>
  /** Removes what install() has created. */
  remove(): Promise<void>
  /** Printed after the installation, if the user has to know more. */
  notice: string | null
}
