// Counts the boxes and snapshots of each region by the provider that has them.

import { isOnHost } from '../../db/is-on-host.ts'
import type { Db } from '../../db/open.ts'
import type { ProviderUse } from '../../providers/check-providers.ts'

/** Those of the host. Leaves out deleted boxes and snapshots, and enrolled machines. */
export async function listProviderUses(db: Db, host: string): Promise<ProviderUse[]> {
  const boxes = await db
    .selectFrom('boxes')
    .select(({ fn }) => ['region', 'provider', fn.countAll().as('count')])
    .where('terminated_at', 'is', null)
    .where('kind', '=', 'managed')
    .where(isOnHost('boxes', host))
    .groupBy(['region', 'provider'])
    .execute()
  const snapshots = await db
    .selectFrom('snapshots')
    .select(({ fn }) => ['region', 'provider', fn.countAll().as('count')])
    .where('deleted_at', 'is', null)
    .where(isOnHost('snapshots', host))
    .groupBy(['region', 'provider'])
    .execute()
  const uses = new Map<string, ProviderUse>()
  const add = (kind: 'boxes' | 'snapshots', rows: typeof boxes) => {
    for (const { region, provider, count } of rows) {
      const use = uses.get(`${region} ${provider}`) ?? { region, provider, boxes: 0, snapshots: 0 }
      uses.set(`${region} ${provider}`, { ...use, [kind]: Number(count) })
    }
  }
  add('boxes', boxes)
  add('snapshots', snapshots)
  return [...uses.values()]
}
