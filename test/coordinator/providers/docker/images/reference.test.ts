// The names of images.
import t from 'tap'
import {
  findReferenceProblem,
  normalizeReference,
  shortenReference,
} from '../../../../../coordinator/providers/docker/images/reference.ts'

const digest = `sha256:${'0a'.repeat(32)}`

t.test('names mean what they mean to the docker command', async (t) => {
  const names: Record<string, [normalized: string, short?: string]> = {
    debian: ['docker.io/library/debian:latest', 'debian:latest'],
    'debian:12': ['docker.io/library/debian:12', 'debian:12'],
    'owner/name': ['docker.io/owner/name:latest', 'owner/name:latest'],
    'docker.io/debian': ['docker.io/library/debian:latest', 'debian:latest'],
    'index.docker.io/debian': ['docker.io/library/debian:latest', 'debian:latest'],
    'ghcr.io/owner/name:v1.2': ['ghcr.io/owner/name:v1.2'],
    'registry:5000/name': ['registry:5000/name:latest'],
    '127.0.0.1:5000/a/b_c__d-e.f:T_1': ['127.0.0.1:5000/a/b_c__d-e.f:T_1'],
    'localhost/name': ['localhost/name:latest'],
    [`debian@${digest}`]: [`docker.io/library/debian@${digest}`, `debian@${digest}`],
    [`debian:12@${digest}`]: [`docker.io/library/debian@${digest}`, `debian@${digest}`],
    // The first digits of the id of an image.
    abcdef012345: ['docker.io/library/abcdef012345:latest', 'abcdef012345:latest'],
  }
  for (const [name, [normalized, short = normalized]] of Object.entries(names)) {
    t.equal(findReferenceProblem(name), null, name)
    t.equal(normalizeReference(name), normalized)
    t.equal(normalizeReference(normalized), normalized)
    t.equal(shortenReference(normalized), short)
    t.equal(normalizeReference(short), normalized)
  }
})

t.test('other names are refused with the rule that they break', async (t) => {
  const names = [
    'Debian',
    'a//b',
    '/a',
    'a/',
    'a/../b',
    'debian:',
    'debian:a b',
    'debian:-1',
    'debian@sha256:12',
    'debian@md5:00',
    '-registry.io/a',
    'registry:port/a',
    'a b',
    'a?x=y',
    'a%2fb',
    '0'.repeat(64),
    'localhost/boxwood-0123456789abcdef/archive:one',
    'localhost/boxwood/empty',
  ]
  for (const name of names) t.type(findReferenceProblem(name), 'string', name)
  for (const name of names) t.throws(() => normalizeReference(name), /^image must/, name)
})
