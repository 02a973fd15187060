// Links that download a file of a box once.
import type { BoxFinder } from '../http/find-box.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import { downloadLinkRoutes } from './routes.ts'
import { createDownloadLinks, type DownloadLinks } from './service.ts'
import { deleteLinksOfBox } from './store.ts'

export function downloadLinksModule({ db, clock, boxFinder }: ModuleBase & { boxFinder: BoxFinder }) {
  const service = createDownloadLinks({ db, clock, boxes: boxFinder })
  const downloadLinks: DownloadLinks = service
  return {
    services: { downloadLinks },
    routes: withTag('Boxes', downloadLinkRoutes({ downloadLinks })),
    schedules: { pruners: { download_links: service.prune } },
    workspaceTables: [{ table: 'download_links', key: 'hash', isCredential: true }],
    deleteOfBox: deleteLinksOfBox,
  } satisfies Module
}
