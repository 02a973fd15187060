// Installs the client of the earlier SDK, that of the Tasks extension, and the inspector, in the versions of package-lock.json. The first call downloads 0.1 GB into
// test/support/mcp-clients/node_modules.
import { join } from 'node:path'
import { installNpmPackages } from '../install-npm-packages.ts'

const MODULES = join(import.meta.dirname, 'node_modules')

export type McpClients = {
  /** The directory of the modules of the earlier SDK. */
  sdkDir: string
  /** The module for clients of the current SDK. */
  tasksModule: string
  inspector: string
  /** Why they are not installed; false: they are. */
  skip: string | false
}

export async function installMcpClients(): Promise<McpClients> {
  return {
    sdkDir: join(MODULES, '@modelcontextprotocol/sdk/dist/esm/client'),
    tasksModule: join(MODULES, '@modelcontextprotocol/ext-tasks/dist/client/index.js'),
    inspector: join(MODULES, '.bin/mcp-inspector'),
    skip: await installNpmPackages(import.meta.dirname, 'the clients of the Model Context Protocol'),
  }
}
