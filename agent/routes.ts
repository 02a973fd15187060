// All routes of the agent.
import { type BrokerDeps, brokerRoutes } from './broker/routes.ts'
import type { CloudCredentialFiles } from './cloud/credentials.ts'
import { cloudRoutes } from './cloud/routes.ts'
import type { DesktopDeps } from './desktop/routes.ts'
import type { EnvironmentDeps } from './environment/routes.ts'
import { type AttachedRouteDeps, attachedRoutes } from './exec/attached/routes.ts'
import { type ExecDeps, execRoutes } from './exec/routes.ts'
import type { FileDeps } from './files/deps.ts'
import { type Uninstall, uninstallRoutes } from './machine/uninstall.ts'
import { type PortDeps, portRoutes } from './ports/routes.ts'
import type { PromptRoutesDeps } from './prompts/routes.ts'
import { type ReportDeps, reportRoutes } from './reports/routes.ts'
import { createJsonRouter, type JsonRouter } from './requests/json-routes.ts'
import type { TerminalDeps } from './terminal/routes.ts'
import { type UpgradeDeps, upgradeRoutes } from './upgrade/routes.ts'
import { activityRoutes } from './vitals/activity-routes.ts'
import type { VitalsService } from './vitals/vitals.ts'

export type AgentRoutesDeps = {
  exec: ExecDeps
  attached: AttachedRouteDeps
  terminal: TerminalDeps
  desktop: DesktopDeps
  files: FileDeps
  environment: EnvironmentDeps
  cloud: CloudCredentialFiles
  ports: PortDeps
  upgrade: UpgradeDeps
  /** null: this agent does not belong to an enrolled machine. */
  uninstall: Uninstall | null
  prompts: PromptRoutesDeps
  broker: BrokerDeps
  reports: ReportDeps
  vitals: Pick<VitalsService, 'liveProcesses' | 'readActivity'>
}

/** `close` terminates synchronous commands and waits for them. */
export function createAgentRouter(deps: AgentRoutesDeps): { router: JsonRouter; close(): Promise<void> } {
  const router = createJsonRouter()
  const { close } = execRoutes(router, deps.exec)
  attachedRoutes(router, deps.attached)
  cloudRoutes(router, deps.cloud)
  portRoutes(router, deps.ports)
  upgradeRoutes(router, deps.upgrade)
  uninstallRoutes(router, deps.uninstall)
  brokerRoutes(router, deps.broker)
  reportRoutes(router, deps.reports)
  activityRoutes(router, deps.vitals)
  // A box may never use these. Their schemas take a quarter of the memory of the agent's own code.
  router.defer(['terminal'], async () =>
    (await import('./terminal/routes.ts')).terminalRoutes(router, deps.terminal),
  )
  router.defer(['desktop'], async () =>
    (await import('./desktop/routes.ts')).desktopRoutes(router, deps.desktop),
  )
  router.defer(['files', 'download', 'upload'], async () =>
    (await import('./files/routes.ts')).fileRoutes(router, deps.files),
  )
  router.defer(['environment-files', 'environment-repos'], async () =>
    (await import('./environment/routes.ts')).environmentRoutes(router, deps.environment),
  )
  router.defer(['prompts'], async () =>
    (await import('./prompts/routes.ts')).promptRoutes(router, deps.prompts),
  )
  router.defer(['processes'], async () =>
    (await import('./vitals/processes/routes.ts')).liveProcessRoutes(router, deps.vitals.liveProcesses),
  )
  return { router, close }
}
