// The images that boxes and snapshots use, as a removal of an image reads them.
import t from 'tap'
import { listImageUses } from '../../../coordinator/boxes/store/image-uses.ts'
import { createProviders } from '../../../coordinator/providers/regions.ts'
import { onEachDatabase } from '../../support/db.ts'
import { FakeImages, withImages } from '../../support/fake-images.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'
import { addUser, createOwner, createTestBoxService } from '../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('the images of live boxes are counted by region, for all users', async (t) => {
    const db = await newDb(t)
    const infra = new FakeInfrastructure()
    const provider = withImages(infra.provider, new FakeImages())
    const regions = createProviders(
      new Map([
        ['us-west-2', infra.provider],
        ['us-east-1', provider],
        ['us-east-2', provider],
      ] as const),
    )
    const boxes = createTestBoxService(db, { regions })
    const first = await createOwner(db)
    const second = await addUser(db, first, { role: 'member' })
    await boxes.create(first, {})
    await boxes.create(first, { image: 'debian:12' })
    await boxes.create(second, { image: 'debian:12' })
    await boxes.create(second, { image: 'debian:12', region: 'us-east-2' })
    const { id } = await boxes.create(second, { image: 'python:3.13' })
    await db.updateTable('boxes').set({ terminated_at: 1 }).where('id', '=', id).execute()
    const uses = await listImageUses(db)
    t.same(
      uses.toSorted((a, b) => (a.region < b.region ? -1 : 1)),
      [
        { kind: 'box', region: 'us-east-1', image: 'debian:12', count: 2 },
        { kind: 'box', region: 'us-east-2', image: 'debian:12', count: 1 },
      ],
    )
  })
})
