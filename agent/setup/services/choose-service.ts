// Chooses what starts the agent on this machine.
import type { Layout } from '../layout.ts'
import type { AgentUser } from '../user.ts'
import { createNoService } from './no-service.ts'
import type { Service, ServiceKind } from './service.ts'
import { createSystemdService, isSystemdRunning, isUserManagerRunning } from './systemd.ts'

/** The kind of service for a new installation. */
export async function chooseServiceKind(): Promise<ServiceKind> {
  if (!(await isSystemdRunning())) return 'none'
  if (process.getuid?.() === 0) return 'systemd'
  return (await isUserManagerRunning()) ? 'systemd-user' : 'none'
}

export function createService(kind: ServiceKind, layout: Layout, user: AgentUser): Service {
  switch (kind) {
    case 'systemd':
      return createSystemdService(layout, 'system', user)
    case 'systemd-user':
      return createSystemdService(layout, 'user', user)
    case 'none':
      return createNoService(layout, user)
  }
}
