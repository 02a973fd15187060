// Installs what the examples in docs/integrations plug boxes into, in the versions of package-lock.json, for tests: the AI SDK,
// the OpenAI Agents SDK, Deep Agents and ComputeSDK. The first call downloads 0.2 GB into test/support/integrations/node_modules.
import { join } from 'node:path'
import { installNpmPackages } from '../install-npm-packages.ts'

export type Integrations = {
  /** The directory with the packages. */
  nodeModules: string
  /** Why they are not installed; false: they are. */
  skip: string | false
}

export const installIntegrations = async (): Promise<Integrations> => ({
  nodeModules: join(import.meta.dirname, 'node_modules'),
  skip: await installNpmPackages(import.meta.dirname, 'the packages of docs/integrations'),
})
