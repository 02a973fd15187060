// All routes of the agent.
import { type BrokerDeps, brokerRoutes } from './broker/routes.ts'
import type { CloudCredentialFiles } from './cloud/credentials.ts'
import { cloudRoutes } from './cloud/routes.ts'
import { type DesktopDeps, desktopRoutes } from './desktop/routes.ts'
import { type EnvironmentDeps, environmentRoutes } from './environment/routes.ts'
import { type AttachedRouteDeps, attachedRoutes } from './exec/attached/routes.ts'
import { type ExecDeps, execRoutes } from './exec/routes.ts'
import type { FileDeps } from './files/deps.ts'
import { fileRoutes } from './files/routes.ts'
import { type Uninstall, uninstallRoutes } from './machine/uninstall.ts'
import { type PortDeps, portRoutes } from './ports/routes.ts'
import { type PromptRoutesDeps, promptRoutes } from './prompts/routes.ts'
import { type ReportDeps, reportRoutes } from './reports/routes.ts'
import { createJsonRouter, type JsonRouter } from './requests/json-routes.ts'
import { type TerminalDeps, terminalRoutes } from './terminal/routes.ts'
import { type UpgradeDeps, upgradeRoutes } from './upgrade/routes.ts'
import { activityRoutes } from './vitals/activity-routes.ts'
import { liveProcessRoutes } from './vitals/processes/routes.ts'
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
  terminalRoutes(router, deps.terminal)
  desktopRoutes(router, deps.desktop)
  fileRoutes(router, deps.files)
  environmentRoutes(router, deps.environment)
  cloudRoutes(router, deps.cloud)
  portRoutes(router, deps.ports)
  upgradeRoutes(router, deps.upgrade)
  uninstallRoutes(router, deps.uninstall)
  promptRoutes(router, deps.prompts)
  brokerRoutes(router, deps.broker)
  reportRoutes(router, deps.reports)
  liveProcessRoutes(router, deps.vitals.liveProcesses)
  activityRoutes(router, deps.vitals)
  return { router, close }
}
