// The decision whether an agent gets a build.
import t from 'tap'
import {
  decideUpgrade,
  getPercentile,
  type UpgradeInput,
} from '../../../../coordinator/agents/upgrades/decide.ts'
import { newUuid } from '../../../../shared/ids.ts'

const INPUT: UpgradeInput = {
  ...{ boxId: newUuid(), version: '0.1.0+1111111111111111', targetBuild: '2222222222222222' },
  ...{ isOffered: true, failedBuild: null, rollout: { share: 100, paused: false } },
}

t.test('the build, failures, a pause and the share decide in this order', async (t) => {
  const all = { failedBuild: '2222222222222222', rollout: { share: 0, paused: true } }
  t.equal(decideUpgrade({ ...INPUT, ...all, version: '0.1.0+2222222222222222' }), 'current')
  t.equal(decideUpgrade({ ...INPUT, ...all }), 'failed')
  t.equal(decideUpgrade({ ...INPUT, ...all, failedBuild: '3333333333333333' }), 'paused')
  t.equal(decideUpgrade({ ...INPUT, rollout: { share: 0, paused: false } }), 'not_selected')
  t.equal(decideUpgrade({ ...INPUT, isOffered: false, rollout: { share: 0, paused: false } }), 'not_selected')
  t.equal(decideUpgrade({ ...INPUT, isOffered: false }), 'elsewhere')
  t.equal(decideUpgrade(INPUT), 'upgrade')
  t.equal(decideUpgrade({ ...INPUT, version: '0.1.0' }), 'upgrade', 'an agent without a build')
})

t.test('a larger share contains the smaller one, and each build starts with other boxes', async (t) => {
  const boxes = Array.from({ length: 2000 }, (_, n) => `${n}-${newUuid()}`)
  const select = (share: number, targetBuild = INPUT.targetBuild) =>
    boxes.filter(
      (boxId) =>
        decideUpgrade({ ...INPUT, boxId, targetBuild, rollout: { share, paused: false } }) === 'upgrade',
    )
  t.same(select(0), [])
  t.same(select(100), boxes)
  const twenty = new Set(select(20))
  t.ok(twenty.size > 250 && twenty.size < 550, `${twenty.size} of 2000`)
  const sixty = new Set(select(60))
  t.ok([...twenty].every((boxId) => sixty.has(boxId)))
  t.ok(select(20, '3333333333333333').some((boxId) => !twenty.has(boxId)))
})

t.test('a percentile is at most 99', async (t) => {
  for (let n = 0; n < 1000; n++) {
    const percentile = getPercentile(`box-${n}`, 'build')
    if (!(Number.isInteger(percentile) && percentile >= 0 && percentile <= 99)) t.fail(String(percentile))
  }
  t.equal(getPercentile('box', 'build'), getPercentile('box', 'build'))
})
