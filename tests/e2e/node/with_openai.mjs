// The official Node client: chat, completions, Responses, transcriptions.
import OpenAI, { toFile } from "openai";
import { answerJobs, pair } from "./say.mjs";

async function send(base, api, stream) {
  const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "none", maxRetries: 0 });
  const more = { model: "m", ...(stream ? { stream } : {}) };
  if (api === "chat") {
    const messages = [{ role: "user", content: "x" }];
    return client.chat.completions.create({ messages, max_tokens: 8, logprobs: true, top_logprobs: 2, ...more });
  }
  if (api === "completions") {
    return client.completions.create({ prompt: "x", max_tokens: 8, logprobs: 2, ...more });
  }
  if (api === "responses") {
    const include = ["message.output_text.logprobs"];
    return client.responses.create({ input: "x", include, top_logprobs: 2, ...more });
  }
  const file = await toFile(Buffer.from("RIFF"), "a.wav");
  return client.audio.transcriptions.create({ file, include: ["logprobs"], response_format: "json", ...more });
}

function read(api, item) {
  if (api === "completions") {
    return item.choices.flatMap(({ logprobs }) =>
      (logprobs?.token_logprobs ?? []).map((logprob, at) =>
        pair({ logprob, probability: logprobs.token_probabilities?.[at] }),
      ),
    );
  }
  let lists = [item.logprobs];
  if (api === "chat") {
    lists = item.choices.map((choice) => choice.logprobs?.content);
  } else if (api === "responses") {
    if (item.output) lists = item.output.flatMap((message) => message.content.map((part) => part.logprobs));
    else if (item.type !== "response.output_text.delta") lists = [];
  }
  return lists.flatMap((entries) => (entries ?? []).map(pair));
}

await answerJobs("openai", async (base, api, stream) => {
  const result = await send(base, api, stream);
  const answer = [];
  if (stream) for await (const item of result) answer.push(item);
  else answer.push(result);
  return { answer, read: answer.flatMap((item) => read(api, item)) };
});
