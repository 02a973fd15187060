// The archives that machines install, and the install script.

import { PROJECT_DIR } from '../../base/project-directory.ts'
import type { Module } from '../../http/module.ts'
import type { AgentBundles } from './agent-bundles.ts'
import { type BundleRoutesOptions, bundleRoutes } from './routes.ts'

export type BundlesModuleContext = Omit<BundleRoutesOptions, 'projectRoot'> & { agentBundles: AgentBundles }

export const bundlesModule = (context: BundlesModuleContext): Module => ({
  publicRoutes: bundleRoutes({ ...context, projectRoot: PROJECT_DIR }),
  // A first start creates the key.
  prepare: async () => void (await context.agentBundles.publicKey()),
  close: { name: 'finish the build of agent bundles', run: context.agentBundles.close },
})
