// The configuration of the container of a box.

import { NODE_FLAGS } from '../../agents/bundles/node-flags.ts'
import { CONTAINER_PATHS, NODE_FILES, SETTINGS_FILE } from '../container/paths.ts'
import { INIT_STOP_SIGNAL } from '../parts/proc.ts'
import type { EngineKind } from './engine.ts'
import type { Limits } from './limits.ts'
import { createLabels, getHomeVolume, getNetworkName, getStateVolume, LABELS, type Labels } from './names.ts'

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export type ContainerInput = {
  kind: EngineKind
  deploymentId: string
  boxId: string
  /** See LABELS. */
  creationId: string | undefined
  hostname: string
  imageId: string
  /** The variables of the image, as NAME=VALUE. */
  imageEnvironment: readonly string[]
  agentVolume: string
  /** The directory of the coordinator's socket on the machine of the engine; null: the agent uses a URL. */
  socketDir: string | null
  limits: Partial<Limits>
}

/** Returns the body of POST /containers/create. The engine's defaults apply to capabilities and to the seccomp profile. */
export function createContainerConfig(input: ContainerInput) {
  const { kind, deploymentId, boxId, creationId, hostname, imageId, agentVolume, socketDir, limits } = input
  const labels = createLabels(deploymentId, 'machine', { boxId })
  return {
    Image: imageId,
    Hostname: hostname,
    // Those of the image do not apply: the init of the box runs as root.
    User: '0:0',
    WorkingDir: '/',
    Entrypoint: ['/bin/sh', CONTAINER_PATHS.init],
    Cmd: [`${CONTAINER_PATHS.nodeDir}/${NODE_FILES.program}`, ...NODE_FLAGS, CONTAINER_PATHS.agent],
    StopSignal: INIT_STOP_SIGNAL,
    Healthcheck: { Test: ['NONE'] },
    Env: createEnvironment(boxId, input.imageEnvironment),
    Labels: { ...labels, ...(creationId !== undefined && { [LABELS.creation]: creationId }) },
    HostConfig: {
      NetworkMode: getNetworkName(boxId),
      SecurityOpt: ['no-new-privileges'],
      Privileged: false,
      Init: false,
      // The lifecycle restarts boxes.
      RestartPolicy: { Name: 'no' },
      Mounts: [
        { ...volume(agentVolume, CONTAINER_PATHS.agentDir, { copiesImage: false }), ReadOnly: true },
        volume(getStateVolume(boxId), CONTAINER_PATHS.state, { copiesImage: false, labels }),
        volume(getHomeVolume(boxId), CONTAINER_PATHS.home, { copiesImage: true, labels }),
        ...(socketDir === null
          ? []
          : [{ Type: 'bind', Source: socketDir, Target: CONTAINER_PATHS.socketDir, ReadOnly: true }]),
      ],
      ...limits,
      // The output of the init, which logs the exits of the agent. Every program of the box can write to it.
      LogConfig:
        kind === 'docker'
          ? { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '2' } }
          : { Type: 'k8s-file', Config: { 'max-size': '1m' } },
    },
  }
}

/** @param labels of a volume that was removed, and that the engine then creates */
const volume = (
  name: string,
  path: string,
  { copiesImage, labels }: { copiesImage: boolean; labels?: Labels },
) => ({
  Type: 'volume',
  Source: name,
  Target: path,
  VolumeOptions: { NoCopy: !copiesImage, ...(labels !== undefined && { Labels: labels }) },
})

function createEnvironment(boxId: string, imageEnvironment: readonly string[]): string[] {
  const names = imageEnvironment.map((variable) => variable.slice(0, variable.indexOf('=')))
  // The image of an archive has the variables of its box.
  const inherited = names.filter(
    (name) => !['PATH', 'HOME', 'USER', 'LOGNAME'].includes(name) && !name.startsWith('BOXWOOD_'),
  )
  return [
    ...(names.includes('PATH') ? [] : [`PATH=${DEFAULT_PATH}`]),
    `HOME=${CONTAINER_PATHS.home}`,
    'USER=root',
    'LOGNAME=root',
    `BOXWOOD_BOX=${boxId}`,
    `BOXWOOD_STATE=${CONTAINER_PATHS.state}`,
    `BOXWOOD_HOME=${CONTAINER_PATHS.home}`,
    `BOXWOOD_NODE=${CONTAINER_PATHS.nodeDir}`,
    `BOXWOOD_SETTINGS=${CONTAINER_PATHS.state}/${SETTINGS_FILE}`,
    `BOXWOOD_INHERITED=${inherited.join(' ')}`,
  ]
}
