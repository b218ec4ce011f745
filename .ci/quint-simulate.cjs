// Tests the runs of spec/runs.qnt and simulates every design of spec/designs.qnt, which it imports, in
// one process, since reading and typechecking the specification takes Quint far longer than either:
// `node quint-simulate.cjs PACKAGE FILE [FOLDER]`.
// With a third argument, a folder, it also writes there what the Python checker of traces reads:
// lease.json, the rules of spec/lease.qnt, and traces of the real design.
// The real design must keep all laws, each broken one must break the law that it is listed with.
'use strict'
const fs = require('node:fs')
const path = require('node:path')
const [, , root, input, folder] = process.argv
const commands = require(path.join(root, 'dist/src/cliCommands.js'))

// name, law, where it begins, steps of a trace, traces at most
const DESIGNS = [
  ['unswept', 'laws', 'free', 100, 25],
  ['unswept', 'laws', 'held', 120, 25],
  ['unswept', 'laws', 'any', 100, 25],
  ['single_observation', 'L12', 'held', 60, 300],
  ['short_window', 'L12', 'held', 60, 300],
  ['after_a_pause', 'L12', 'held', 120, 400],
  ['at_the_deadline', 'L1', 'held', 120, 400],
  ['uncounted_beats', 'L2', 'any', 100, 300],
  ['renews_all_it_owns', 'L13', 'free', 200, 400],
  ['epoch_blind', 'L3', 'any', 100, 300],
  ['owner_blind', 'L3', 'any', 100, 300],
  ['standing_epoch', 'L3', 'any', 100, 300],
  ['undead', 'L4', 'any', 100, 300],
  ['forgotten_cancel', 'L7', 'any', 100, 300],
].filter(([name]) => !process.env.ONLY || process.env.ONLY.split(',').includes(name))
const TRACES = 8
const START = { free: ['init', 'step'], held: ['initHeld', 'watch'], any: ['init', 'bustle'] }

// An expression as spec/agreement/quint.py reads it: without numbers, types and places.
function bare(e) {
  if (e.kind === 'str') return ['str', e.value]
  if (e.kind === 'int') return Number(e.value)
  if (e.kind === 'bool') return e.value
  if (e.kind === 'name') return e.name
  if (e.kind === 'lambda') return ['lambda', e.params.map((p) => p.name), bare(e.expr)]
  if (e.kind === 'let') return ['let', e.opdef.name, bare(e.opdef.expr), bare(e.expr)]
  return [e.opcode, ...e.args.map(bare)]
}

function writeRules(modules) {
  const defs = modules.find((m) => m.name === 'lease').declarations.filter((d) => d.kind === 'def')
  // By name: in which order Quint has them depends on who imports them.
  const lines = defs.map((d) => `${JSON.stringify(d.name)}: ${JSON.stringify(bare(d.expr))}`).sort()
  fs.writeFileSync(path.join(folder, 'lease.json'), `{\n${lines.join(',\n')}\n}\n`)
}

// Of each trace only what the store was asked and the rows that it named: no
// other row changes.
function slim(file) {
  const trace = JSON.parse(fs.readFileSync(file, 'utf8'))
  const named = (state, name) => state[Object.keys(state).find((key) => key.split('::').pop() === name)]
  const states = trace.states
    .map((state) => ({ ...named(state, 'did'), jobs: named(state, 'jobs') }))
    .filter(({ writes }) => writes['#map'].length > 0)
    .map(({ jobs, name, by, at, writes }) => {
      const named = new Set(writes['#map'].map(([job]) => job))
      const rows = { '#map': jobs['#map'].filter(([job]) => named.has(job)) }
      return { did: { name, by, at, writes }, jobs: rows }
    })
  const lines = states.map((state) => JSON.stringify(state)).join(',\n')
  fs.writeFileSync(file, `{"vars":["did","jobs"],"states":[\n${lines}\n]}\n`)
}

async function writeTraces(spec, args, step, maxSteps) {
  const outItf = path.join(folder, `${step}_{seq}.itf.json`)
  await commands.runSimulator({
    ...spec,
    args: { ...args, main: 'unswept', init: 'init', step, maxSteps, maxSamples: TRACES,
            nTraces: TRACES, invariant: 'true', outItf },
  })
  for (let seq = 0; seq < TRACES; seq++) slim(outItf.replace('{seq}', seq))
}

// The runs of spec/runs.qnt must end as each of them says; the number of wrong ones.
async function test(spec, args) {
  let wrong = 0
  for (const main of ['runs', 'seldom', 'deadline_identity']) {
    const run = await commands.runTests({ ...spec, args: { ...args, main, match: 'Test$', maxSamples: 5 } })
    const { passed, failed } = run.isRight() ? run.value : run.value.stage
    const expected = failed.length === 0 && passed.length > 0
    wrong += expected ? 0 : 1
    console.log(`${expected ? 'ok   ' : 'WRONG'} ${main.padEnd(20)} ${passed.length} runs end as they should`)
    for (const name of failed) console.log(`      but not ${name}`)
  }
  return wrong
}

async function main() {
  const args = {
    input, backend: 'typescript', verbosity: 0, nTraces: 1, nThreads: 1, invariants: [],
    witnesses: [], hide: [], mbt: false, seed: 1n,
  }
  const loaded = await commands.load(args)
  const parsed = await loaded.asyncChain(commands.parse)
  const checked = await parsed.asyncChain(commands.typecheck)
  const spec = checked.unwrap()
  if (folder) {
    writeRules(spec.modules)
    await writeTraces(spec, args, 'step', 300)
    await writeTraces(spec, args, 'bustle', 150)
  }
  let wrong = await test(spec, args)
  for (const [name, law, start, maxSteps, maxSamples] of DESIGNS) {
    const [init, step] = START[start]
    const began = Date.now()
    const run = await commands.runSimulator({
      ...spec,
      args: { ...args, main: name, init, step, maxSteps, maxSamples, invariant: law },
    })
    const status = run.isRight() ? run.value.status : run.value.stage.status
    const found = status === 'violation'
    const expected = name === 'unswept' ? status === 'ok' : found
    wrong += expected ? 0 : 1
    const verdict = found ? `${law} is broken` : status === 'ok' ? `${law}: held` : status
    const seconds = ((Date.now() - began) / 1000).toFixed(1)
    console.log(`${expected ? 'ok   ' : 'WRONG'} ${name.padEnd(20)} ${start}  ${verdict} (${seconds} s)`)
    if (status !== 'ok' && !found) console.log(run.value.msg, run.value.stage.errors)
  }
  process.exitCode = wrong ? 1 : 0
}

main()
