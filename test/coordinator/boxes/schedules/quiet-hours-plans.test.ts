// The start of quiet hours reads the live boxes of the workspace by an index, page by page.
import t from 'tap'
import { listBoxesToQuiet } from '../../../../coordinator/boxes/store/box-lists.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import { createOwner, createTestBoxService } from '../../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  const { db, readPlans } = capturePlans(await newDb(t))
  const owner = await createOwner(db)
  const { workspaceId } = owner
  const boxes = createTestBoxService(db)
  for (let count = 0; count < 3; count += 1) await boxes.create(owner, {})
  await readPlans()
  const first = await listBoxesToQuiet(db, workspaceId, undefined, 2)
  const rest = await listBoxesToQuiet(db, workspaceId, first.at(-1), 2)
  t.equal(new Set([...first, ...rest].map(({ id }) => id)).size, 3)
  t.equal(rest.length, 1)
  const plans = (await readPlans()).join('\n')
  t.match(plans, /boxes_live/)
  t.notMatch(plans, /^SCAN|Seq Scan|TEMP B-TREE|Sort/m)
})
