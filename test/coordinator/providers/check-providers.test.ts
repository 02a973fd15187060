// The providers that regions had before a start, and those of the configuration.
import t from 'tap'
import { StartError } from '../../../coordinator/base/start-error.ts'
import { listProviderUses } from '../../../coordinator/boxes/store/provider-uses.ts'
import { checkProviders } from '../../../coordinator/providers/check-providers.ts'
import { loadConfig } from '../../../coordinator/server/config.ts'
import type { Region } from '../../../shared/tiers.ts'
import { onEachDatabase } from '../../support/db.ts'
import { TEST_HOST } from '../../support/replica.ts'
import { createOwner, createTestBoxService } from '../../support/workspace.ts'

const regions = (...entries: [Region, 'local' | 'docker'][]) =>
  new Map(entries.map(([region, kind]) => [region, { kind, target: null }]))

t.test('a region must keep the provider of its boxes and snapshots', async (t) => {
  const use = { region: 'us-east-1', boxes: 2, snapshots: 1 } as const
  for (const configured of [
    regions(['us-east-1', 'docker']),
    regions(['us-west-2', 'docker'], ['us-east-1', 'docker']),
  ])
    t.doesNotThrow(() => checkProviders([{ ...use, provider: 'docker' }], configured))
  t.doesNotThrow(() => checkProviders([{ ...use, provider: 'local' }], regions()), 'a removed local region')
  t.throws(
    () => checkProviders([{ ...use, provider: 'docker' }], regions(['us-east-1', 'local'])),
    new StartError(
      'Region us-east-1 has the provider local in this start, but the provider docker has 2 boxes and 1 snapshot there.\nStart with BOXWOOD_REGIONS=us-east-1=docker. To use another provider, first start with this one and delete them, or move the boxes to another region.',
    ),
  )
  t.throws(
    () => checkProviders([{ ...use, provider: 'docker', boxes: 0 }], regions(['us-west-2', 'local'])),
    /^Region us-east-1 is not in BOXWOOD_REGIONS, but the provider docker has 1 snapshot there\.\nStart with BOXWOOD_REGIONS=us-west-2=local,us-east-1=docker\./,
  )
  t.throws(
    () => checkProviders([{ ...use, provider: 'docker' }], loadConfig({}).regions),
    /\nStart with BOXWOOD_REGIONS=us-west-2=local,us-east-1=docker\./,
    'the regions of a start without the variable',
  )
})

onEachDatabase(t, async (t, newDb) => {
  t.test('the live boxes are counted by region and provider', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    for (const region of ['us-west-2', 'us-east-1', 'us-east-1'] as const)
      await boxes.create(owner, { region })
    const { id } = await boxes.create(owner, {})
    await db.updateTable('boxes').set({ terminated_at: 1 }).where('id', '=', id).execute()
    const uses = await listProviderUses(db, TEST_HOST)
    t.same(
      uses.toSorted((a, b) => (a.region < b.region ? -1 : 1)),
      [
        { region: 'us-east-1', provider: 'fake', boxes: 2, snapshots: 0 },
        { region: 'us-west-2', provider: 'fake', boxes: 1, snapshots: 0 },
      ],
    )
  })
})
