// Who may view shared ports: the check of each request to a link, and the sign-in of members at the main origin.

import type { BoxService } from '../../../boxes/service.ts'
import type { CredentialFinders } from '../../../http/auth.ts'
import type { Module, ModuleBase } from '../../../http/module.ts'
import type { PortShares, ShareViewers } from '../../../port-shares/types.ts'
import type { AuthorizeViewer } from '../types.ts'
import { createViewerAuthorizer } from './authorize.ts'
import { createShareOpenRoute } from './open-route.ts'
import { createShareSignInRoute } from './sign-in-route.ts'
import { createShareWakeRoute } from './wake-route.ts'

export type ViewersModuleContext = Pick<ModuleBase, 'clock'> & {
  finders: CredentialFinders
  portShares: PortShares
  shareViewers: ShareViewers
  boxes: BoxService
  urls: { public: string }
}

export function viewersModule(context: ViewersModuleContext) {
  const { clock, finders, portShares, shareViewers, boxes, urls } = context
  const options = { finders, portShares, publicUrl: urls.public }
  const authorizeViewer: AuthorizeViewer = createViewerAuthorizer({
    base: portShares.base,
    viewers: shareViewers,
    clock,
    publicUrl: urls.public,
  })
  return {
    services: { authorizeViewer },
    publicRoutes: [
      createShareSignInRoute({ ...options, shareViewers }),
      createShareOpenRoute({ ...options, shareViewers }),
      createShareWakeRoute({ ...options, boxes }),
    ],
  } satisfies Module
}
