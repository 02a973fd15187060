// The configuration of the containers of boxes, and the names of their images.
import t from 'tap'
import { createContainerConfig } from '../../../../coordinator/providers/docker/container-config.ts'
import type { Engine } from '../../../../coordinator/providers/docker/engine.ts'
import { createEngineImages } from '../../../../coordinator/providers/docker/images/images.ts'

const INPUT = {
  deploymentId: '0123456789abcdef',
  boxId: '4b48fe8d-1f5e-4553-9122-ebe5cef70002',
  creationId: 'creation',
  hostname: 'fig',
  imageId: 'sha256:1',
  imageEnvironment: [],
  agentVolume: 'boxwood-agent',
  socketDir: null,
  limits: {},
}

t.test('every engine limits the log, to which root in a box can write', async (t) => {
  for (const kind of ['docker', 'podman'] as const)
    t.match(createContainerConfig({ ...INPUT, kind }), {
      HostConfig: { LogConfig: { Config: { 'max-size': '1m' } } },
    })
})

t.test('policies and uses compare the full names of images', async (t) => {
  const { normalize } = createEngineImages({ kind: 'docker' } as Engine, { defaultImage: 'debian:12' })
  t.equal(normalize?.('debian:12'), 'docker.io/library/debian:12')
  t.equal(normalize?.('index.docker.io/library/debian:12'), 'docker.io/library/debian:12')
})
