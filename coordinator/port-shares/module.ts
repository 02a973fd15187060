// Shared ports and the listening ports of boxes (spec §4.5).

import type { Admit } from '../admission/admit.ts'
import type { Heartbeats } from '../boxes/lifecycle/heartbeats.ts'
import type { Trx } from '../db/transaction.ts'
import type { BoxFinder } from '../http/find-box.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import type { ConfirmActor } from '../identity/confirm-actor.ts'
import { createCertificateRoute } from './certificate-route.ts'
import { createOpenings } from './openings.ts'
import { portRoutes } from './routes.ts'
import { createServedShares, type ServedShares } from './served-shares.ts'
import { createPortShareService } from './service.ts'
import type { PortShareSettings } from './settings.ts'
import { createShareBase, findCommonSite, getDefaultOrigin } from './share-base.ts'
import { deleteSharesOfBox } from './store.ts'
import type { PortShares } from './types.ts'

export type PortsModuleContext = ModuleBase & {
  config: PortShareSettings
  boxFinder: BoxFinder
  heartbeats: Heartbeats
  admit: Admit
  confirmActor: ConfirmActor
  urls: { agents: string; public: string; listener: string }
}

export function portsModule(context: PortsModuleContext) {
  const { config, db, clock, log, boxFinder, heartbeats, admit, confirmActor, urls } = context
  const switches = { shares: config.shares, shareLinks: config.shareLinks }
  const base = createShareBase(config.shareBase ?? getDefaultOrigin(urls.listener), [
    urls.public,
    urls.agents,
  ])
  const site =
    config.shares && config.shareBase !== null ? findCommonSite(config.shareBase, urls.public) : null
  if (site !== null)
    log.warn(
      { shareBase: config.shareBase, publicUrl: urls.public },
      `links to shared ports and the dashboard are on one site, ${site}: their pages can set cookies for the dashboard, and sign its users out. Set BOXWOOD_SHARE_BASE to a name under another registered domain`,
    )
  const served = createServedShares({ db, clock, log, switches })
  const shares = createPortShareService({
    db,
    clock,
    boxes: boxFinder,
    base,
    switches,
    admit,
    confirmActor,
  })
  const openings = createOpenings({ db, clock, log })
  const portShares: PortShares & Pick<ServedShares, 'onBoxDelete'> = {
    ...served,
    base,
    recordOpening: openings.record,
  }
  return {
    services: { portShares },
    routes: withTag('Boxes', portRoutes({ boxes: boxFinder, shares, heartbeats, clock })),
    publicRoutes: config.shares ? [createCertificateRoute(portShares)] : [],
    schedules: { pruners: { port_shares: shares.prune } },
    workspaceTables: [{ table: 'port_shares', key: 'id' }],
    deleteOfBox: (trx: Trx, boxId: string) => deleteSharesOfBox(trx, boxId),
    restrictBox: served.restrictBox,
    close: { name: 'write the openings of links', run: openings.close },
  } satisfies Module
}
