// All routes of the agent.
import type { AgentAppOptions } from './app.ts'
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

export const agentRoutes = (deps: AgentRoutesDeps): AgentAppOptions['routes'] => [
  (scope) => execRoutes(scope, deps.exec),
  (scope) => attachedRoutes(scope, deps.attached),
  (scope) => terminalRoutes(scope, deps.terminal),
  (scope) => desktopRoutes(scope, deps.desktop),
  (scope) => fileRoutes(scope, deps.files),
  (scope) => environmentRoutes(scope, deps.environment),
  (scope) => cloudRoutes(scope, deps.cloud),
  (scope) => portRoutes(scope, deps.ports),
  (scope) => upgradeRoutes(scope, deps.upgrade),
  (scope) => uninstallRoutes(scope, deps.uninstall),
  (scope) => promptRoutes(scope, deps.prompts),
  (scope) => brokerRoutes(scope, deps.broker),
  (scope) => reportRoutes(scope, deps.reports),
  (scope) => liveProcessRoutes(scope, deps.vitals.liveProcesses),
  (scope) => activityRoutes(scope, deps.vitals),
]
