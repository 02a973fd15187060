// Chooses what starts the agent on this machine.
import type { Layout } from '../layout.ts'
import type { AgentUser } from '../user.ts'
import { createBusyboxService, isBusyboxRunning } from './busybox.ts'
import { createNoService } from './no-service.ts'
import { createOpenrcService, isOpenrcRunning } from './openrc.ts'
import type { Service, ServiceKind } from './service.ts'
import { createSystemdService, isSystemdRunning, isUserManagerRunning } from './systemd.ts'

/** The kind of service for a new installation. */
export async function chooseServiceKind(): Promise<ServiceKind> {
  const isRoot = process.getuid?.() === 0
  if (await isSystemdRunning()) {
    if (isRoot) return 'systemd'
    return (await isUserManagerRunning()) ? 'systemd-user' : 'none'
  }
  if (!isRoot) return 'none'
  if (await isOpenrcRunning()) return 'openrc'
  return (await isBusyboxRunning()) ? 'busybox' : 'none'
}

export function createService(kind: ServiceKind, layout: Layout, user: AgentUser): Service {
  switch (kind) {
    case 'systemd':
      return createSystemdService(layout, 'system', user)
    case 'systemd-user':
      return createSystemdService(layout, 'user', user)
    case 'openrc':
      return createOpenrcService(layout, user)
    case 'busybox':
      return createBusyboxService(layout, user)
    case 'none':
      return createNoService(layout, user)
  }
}
