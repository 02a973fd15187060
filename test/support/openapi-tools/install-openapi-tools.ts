// Installs the linter and the generators that read the OpenAPI document, in the versions of package-lock.json, for tests.
//
//   const tools = await installOpenApiTools()
//   t.test('…', { skip: tools.skip }, async (t) => { … tools.nodeModules … })
//
// The first call downloads 70 MB into test/support/openapi-tools/node_modules.
import { join } from 'node:path'
import { installNpmPackages } from '../install-npm-packages.ts'

export type OpenApiTools = {
  /** The directory with the packages. */
  nodeModules: string
  /** Why they are not installed; false: they are. */
  skip: string | false
}

export const installOpenApiTools = async (): Promise<OpenApiTools> => ({
  nodeModules: join(import.meta.dirname, 'node_modules'),
  skip: await installNpmPackages(import.meta.dirname, 'the tools for OpenAPI documents'),
})
