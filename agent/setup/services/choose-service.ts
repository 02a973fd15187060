// Chooses what starts the agent on this machine.
import type { Layout } from '../layout.ts'
import type { AgentUser } from '../user.ts'
import { createNoService } from './no-service.ts'
import type { Service, ServiceKind } from './service.ts'

export async function chooseService(
  layout: Layout,
  _options: { hasService: boolean; user: AgentUser },
): Promise<Service> {
  return createService('none', layout)
}

/** The service of an existing installation. */
export function createService(_kind: ServiceKind, layout: Layout): Service {
  return createNoService(layout)
}
