// The shapes of Incus' REST API that the provider uses.

export type Devices = Record<string, Record<string, string>>

export type Instance = {
  name: string
  /** Such as x86_64. */
  architecture: string
  /** Running, Stopped, Frozen, Error, or a transition such as Starting. */
  status: string
  /** The member of the cluster; `none` without a cluster. */
  location: string
  config: Record<string, string>
  devices: Devices
}

/** The members that several requests for instances have in common. */
export type InstanceSettings = Partial<Pick<Instance, 'config' | 'devices'>>

export type InstanceState = {
  status: string
  disk: Record<string, { usage?: number }> | null
}

export type Operation = {
  id: string
  created_at: string
  /** 1xx: in progress. 200: success. 4xx: failure or cancellation. */
  status_code: number
  resources: Record<string, string[]> | null
  metadata: Record<string, unknown> | null
  err: string
}

export type Image = {
  fingerprint: string
  type: string
  size: number
  created_at: string
  uploaded_at: string
  aliases: { name: string }[]
  update_source?: { alias?: string; server?: string }
}

export type ServerInfo = {
  /** trusted or untrusted */
  auth: string
  api_extensions: string[]
  environment: {
    server_version: string
    server_name: string
    server_clustered: boolean
    kernel_architecture: string
  }
}

export type Pool = { name: string; driver: string }
export type Profile = { devices: Devices }
export type PoolResources = {
  space: { used: number; total: number }
  inodes?: { used: number; total: number }
}
export type Volume = {
  name: string
  config: Record<string, string>
  used_by: string[] | null
  location: string
}

export const isFinished = ({ status_code }: Operation): boolean => status_code >= 200
