// The order of versions.
import t from 'tap'
import { compareVersions } from '../../../../coordinator/agents/upgrades/compare-versions.ts'

t.test('versions are ordered as Semantic Versioning orders them', async (t) => {
  const ordered = [
    '0.9.0',
    '1.0.0-alpha',
    '1.0.0-alpha.1',
    '1.0.0-alpha.beta',
    '1.0.0-beta.2',
    '1.0.0-beta.11',
    '1.0.0-rc.1',
    '1.0.0-rc-2',
    '1.0.0',
    '1.0.1',
    '1.2.0',
    '1.10.0',
    '10.0.0',
  ]
  for (const [index, version] of ordered.entries()) {
    t.equal(compareVersions(version, `${version}+build`), 0, version)
    for (const older of ordered.slice(0, index)) {
      t.ok(compareVersions(older, version) < 0, `${older} is older than ${version}`)
      t.ok(compareVersions(version, older) > 0, `${version} is newer than ${older}`)
    }
  }
})
