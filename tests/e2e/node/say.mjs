// What the scripts here have in common: the same as ../clients/say.py.
import { readFileSync } from "node:fs";

export function pair({ logprob, probability }) {
  return [logprob, probability ?? null];
}

export async function answerJobs(name, ask) {
  const { version } = JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), "utf8"));
  const jobs = process.argv.slice(2);
  for (let at = 0; at < jobs.length; at += 3) {
    const [base, api, mode] = jobs.slice(at, at + 3);
    let said;
    try {
      said = await ask(base, api, mode === "stream");
    } catch (error) {
      said = { error: String(error.stack) };
    }
    console.log(JSON.stringify({ version, ...said }));
  }
}
