// The people who view shares for members: their sessions, and the links that open a share without a sign-in.
import type { BackgroundTasks } from '../../base/background-tasks.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { PortShares } from '../types.ts'
import { shareViewerRoutes } from './routes.ts'
import { createShareViewers, type ShareViewerService, type ShareViewersOptions } from './service.ts'
import { deleteViewersOfBox } from './store.ts'

export type ShareViewersModuleContext = Pick<ModuleBase, 'db' | 'clock'> &
  Pick<ShareViewersOptions, 'findActor'> & {
    background: BackgroundTasks
    portShares: PortShares
    urls: { public: string }
  }

export function shareViewersModule(context: ShareViewersModuleContext) {
  const { db, clock, findActor, background, portShares, urls } = context
  const shareViewers: ShareViewerService = createShareViewers({ db, clock, findActor })
  portShares.events.on('ended', (shareId, origin) => {
    if (origin === 'here')
      background.run('delete the viewers of a share', () => shareViewers.deleteOfShare(shareId))
  })
  return {
    services: { shareViewers },
    routes: withTag('Boxes', shareViewerRoutes({ portShares, shareViewers, publicUrl: urls.public })),
    schedules: { pruners: { share_viewers: shareViewers.prune } },
    workspaceTables: [{ table: 'share_viewers', key: 'id', isCredential: true }],
    deleteOfBox: deleteViewersOfBox,
  } satisfies Module
}
