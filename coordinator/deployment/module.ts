// The values of the deployment that are encrypted with a master key.
import type { Module } from '../http/module.ts'

export const deploymentModule = (): Module => ({
  sealedColumns: [{ table: 'deployment_values', id: 'name', value: 'value', isOfDeployment: true }],
})
